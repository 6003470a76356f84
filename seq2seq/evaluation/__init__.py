"""How good is a translation: BLEU and chrF, each with the signature that makes the number comparable."""
