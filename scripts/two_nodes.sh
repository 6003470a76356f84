#!/usr/bin/env bash
# Two machines on one: two network namespaces joined by a virtual cable, one training process in each. As root, on Linux:
#   scripts/two_nodes.sh CONFIG [--set KEY=VALUE ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python="${PYTHON:-python3}"
number=$$
first="seq2seq-$number-a" second="seq2seq-$number-b"
end() {
  ip netns delete "$first" 2>/dev/null || true
  ip netns delete "$second" 2>/dev/null || true
}
trap end EXIT

ip netns add "$first"
ip netns add "$second"
ip link add "a$number" type veth peer name "b$number"
ip link set "a$number" netns "$first" name eth0
ip link set "b$number" netns "$second" name eth0
ip -n "$first" address add 10.77.0.1/24 dev eth0
ip -n "$second" address add 10.77.0.2/24 dev eth0
for node in "$first" "$second"; do
  ip -n "$node" link set lo up
  ip -n "$node" link set eth0 up
done

node() { # NAMESPACE RANK ARGUMENT...
  local namespace="$1" rank="$2"
  shift 2
  GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 ip netns exec "$namespace" "$python" -m torch.distributed.run \
    --nnodes 2 --node-rank "$rank" --nproc-per-node 1 --master-addr 10.77.0.1 --master-port 29500 scripts/train.py "$@"
}

node "$second" 1 "$@" &
node "$first" 0 "$@"
wait
