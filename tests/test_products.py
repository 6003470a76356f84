"""Our own products with matrices that are laid out: what PyTorch multiplies, and a row's answer in any company.

Letters: R rows, I inputs, O outputs.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch import Tensor

from seq2seq.model import kernels
from seq2seq.model.kernels import building
from seq2seq.model.kernels.products import Products
from seq2seq.model.packed import PackedMatrix

SHAPES = [(1, 1, 1), (1, 5, 3), (2, 64, 40), (3, 33, 100), (7, 64, 16), (13, 300, 70), (200, 65, 33), (40, 1500, 17)]


def ours() -> Products:
    found = kernels.products_for(torch.device("cpu"), torch.float32)
    if found is None:
        pytest.skip("no products of our own on this machine: no C compiler, or no AVX2")
    return found


@pytest.fixture(scope="module", params=["as here", 8, 16])
def products(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Products:
    """Those of this machine, and those for registers of 8 and of 16 numbers, whether it has them or not."""
    here = ours()
    if request.param == "as here":
        return here
    compiler, library = shutil.which("cc"), tmp_path_factory.mktemp("products") / f"{request.param}.so"
    if compiler is None:
        pytest.skip("no C compiler")
    sources = [str(Path(building.__file__).parent / name) for name in ("kernels.c", "products.c")]
    flags = ["-march=native", "-O1", "-ffp-contract=fast", "-fPIC", "-shared", "-Wno-psabi", f"-DWIDTH={request.param}"]
    subprocess.run([compiler, *flags, *sources, "-o", str(library), "-lm"], check=True)
    found = Products.of(ctypes.CDLL(str(library)))
    assert found is not None
    assert found.panel == 2 * request.param
    return found


def made(rows: int, inputs: int, outputs: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(rows + inputs + outputs)
    return torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_a_product_is_that_of_pytorch(products: Products, rows: int, inputs: int, outputs: int) -> None:
    x_RI, weight_OI, bias_O = made(rows, inputs, outputs)
    panels = products.lay_out(weight_OI)
    exact_RO = x_RI.double() @ weight_OI.double().T
    found_RO = products.multiply(x_RI, panels, outputs, bias_O).double()
    torch.testing.assert_close(found_RO, exact_RO + bias_O, atol=1e-5 * inputs**0.5, rtol=1e-5)
    found_RO = products.multiply(x_RI, panels, outputs, None).double()
    torch.testing.assert_close(found_RO, exact_RO, atol=1e-5 * inputs**0.5, rtol=1e-5)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_a_row_gives_the_same_bits_in_any_company(products: Products, rows: int, inputs: int, outputs: int) -> None:
    x_RI, weight_OI, bias_O = made(rows, inputs, outputs)
    panels, whole = products.lay_out(weight_OI), (weight_OI / 5).clamp(-1, 1).mul(64).round().to(torch.int8)
    together_RO = products.multiply(x_RI, panels, outputs, bias_O)
    bytes_RO = products.multiply_bytes(x_RI, products.lay_out_bytes(whole), bias_O.abs(), bias_O)
    for some in (1, 2, 5, 12, 31):
        for first in range(0, rows, max(some, rows // 3)):
            part = x_RI[first : first + some]
            assert torch.equal(products.multiply(part, panels, outputs, bias_O), together_RO[first : first + some])
            found = products.multiply_bytes(part, products.lay_out_bytes(whole), bias_O.abs(), bias_O)
            assert torch.equal(found, bytes_RO[first : first + some])


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_bytes_are_multiplied_and_added_without_an_error(
    products: Products, rows: int, inputs: int, outputs: int
) -> None:
    """The largest bytes on both sides, also of one neighbour alone: the sums are those of whole numbers."""
    x_RI, weight_OI, _ = made(rows, inputs, outputs)
    x_RI, whole_OI = x_RI.sign() * 127.0, (weight_OI.sign() * 64).to(torch.int8)
    whole_OI[::2, ::2], whole_OI[::2, 1::2] = whole_OI[::2, ::2].sign() * 127, 1
    zeros_O = torch.zeros(outputs)
    found_RO = products.multiply_bytes(x_RI, products.lay_out_bytes(whole_OI), zeros_O + 1, zeros_O)
    assert torch.equal(found_RO.double(), (x_RI.double() @ whole_OI.double().T).float().double())


def test_rows_are_rounded_to_bytes_by_their_own_largest(products: Products) -> None:
    x_RI = torch.tensor([[1.0, -0.5, 0.003, 0.0], [100.0, 0.3, 0.5, -100.0], [0.0, 0.0, 0.0, 0.0]])
    one_OI = torch.eye(4, dtype=torch.int8)
    found_RO = products.multiply_bytes(x_RI, products.lay_out_bytes(one_OI), torch.ones(4), torch.zeros(4))
    wanted_RO = torch.tensor([[127.0, -63.0, 0.0, 0.0], [127.0, 0.0, 1.0, -127.0], [0.0] * 4])
    torch.testing.assert_close(found_RO, wanted_RO * torch.tensor([[1.0], [100.0], [0.0]]) / 127)


def test_what_is_not_a_number_stays_in_its_row(products: Products) -> None:
    x_RI, weight_OI, bias_O = made(7, 20, 40)
    panels = products.lay_out(weight_OI)
    clean_RO = products.multiply(x_RI, panels, 40, bias_O)
    x_RI[3, 5] = torch.nan
    found_RO = products.multiply(x_RI, panels, 40, bias_O)
    assert found_RO[3].isnan().all()
    others = [0, 1, 2, 4, 5, 6]
    assert torch.equal(found_RO[others], clean_RO[others])


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_a_number_is_none_in_bytes_either(products: Products, value: float) -> None:
    x_RI, weight_OI, bias_O = made(7, 20, 40)
    laid_out = products.lay_out_bytes((20 * weight_OI).clamp(-64, 64).to(torch.int8))
    clean_RO = products.multiply_bytes(x_RI, laid_out, bias_O.abs() + 1, bias_O)
    x_RI[3, 5] = value
    found_RO = products.multiply_bytes(x_RI, laid_out, bias_O.abs() + 1, bias_O)
    assert not found_RO[3].isfinite().any()
    others = [0, 1, 2, 4, 5, 6]
    assert torch.equal(found_RO[others], clean_RO[others])


def test_threads_share_a_product_and_change_nothing(products: Products) -> None:
    x_RI, weight_OI, bias_O = made(64, 256, 500)
    one = products.multiply(x_RI, products.lay_out(weight_OI), 500, bias_O)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch.equal(products.multiply(x_RI, products.lay_out(weight_OI), 500, bias_O), one)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("in_bytes", [False, True])
def test_the_steps_of_a_gru_are_its_equations(products: Products, in_bytes: bool) -> None:
    """Inputs' products of which every second step is read, as those of a direction are that lie beside another's."""
    torch.manual_seed(1)
    inputs_BTG, first_BH = torch.randn(4, 10, 60)[:, ::2], torch.randn(4, 20)
    weight_GH, bias_G, scale_G = torch.randint(-64, 65, (60, 20)).to(torch.int8), torch.randn(60), torch.rand(60) / 99

    def product(state_BH: Tensor) -> Tensor:
        if in_bytes:
            return products.multiply_bytes(state_BH, products.lay_out_bytes(weight_GH), scale_G, bias_G)
        return products.multiply(state_BH, products.lay_out(weight_GH / 99), 60, bias_G)

    def steps(some: slice) -> Tensor:
        given = inputs_BTG[some], first_BH[some]
        if in_bytes:
            return products.gru_steps_of_bytes(*given, products.lay_out_bytes(weight_GH), scale_G, bias_G)
        return products.gru_steps(*given, products.lay_out(weight_GH / 99), bias_G)

    state_BH, wanted = first_BH, []
    for inputs_BG in inputs_BTG.unbind(1):
        (r_BH, z_BH, n_BH), (s_BH, y_BH, m_BH) = inputs_BG.chunk(3, 1), product(state_BH).chunk(3, 1)
        n_BH = torch.tanh(n_BH + torch.sigmoid(r_BH + s_BH) * m_BH)
        state_BH = torch.lerp(n_BH, state_BH, torch.sigmoid(z_BH + y_BH))
        wanted.append(state_BH)
    found_BTH = steps(slice(None))
    # In bytes a difference in the last bit may round a number of the next step to the byte beside it.
    near = {"atol": 2e-2, "rtol": 0.0} if in_bytes else {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(found_BTH, torch.stack(wanted, 1), **near)
    for row in range(4):
        assert torch.equal(steps(slice(row, row + 1))[0], found_BTH[row]), "a sentence depends on itself alone"


def test_rows_may_be_a_view_and_matrices_parameters() -> None:
    ours()
    x_RI, weight_OI, bias_O = made(6, 40, 30)
    matrix = PackedMatrix(torch.nn.Parameter(weight_OI), torch.nn.Parameter(bias_O), rows=1)
    wanted_RO = torch.nn.functional.linear(x_RI.T.contiguous().T, weight_OI, bias_O)
    torch.testing.assert_close(matrix.times(x_RI.T.contiguous().T), wanted_RO, atol=1e-5, rtol=1e-5)
    assert matrix.times(x_RI[:0]).shape == (0, 30)


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_products_of_each_sentence_are_those_of_pytorch(
    products: Products, rows: int, inputs: int, outputs: int, heads: int
) -> None:
    """Attention's: queries against keys, whose heads are slices of their width, and weights against values."""
    torch.manual_seed(rows)
    x_BNRI = torch.randn(3, rows, heads, inputs).transpose(1, 2)
    keys_BNOI = torch.randn(3, outputs, heads, inputs).transpose(1, 2)
    values_BNIO = torch.randn(3, heads, inputs, outputs)
    near = {"atol": 1e-5 * inputs**0.5, "rtol": 1e-5}
    torch.testing.assert_close(products.multiply_each(x_BNRI, keys_BNOI.mT), x_BNRI @ keys_BNOI.mT, **near)
    torch.testing.assert_close(products.multiply_each(x_BNRI, values_BNIO), x_BNRI @ values_BNIO, **near)
    turned = x_BNRI.contiguous().mT.contiguous().mT
    torch.testing.assert_close(products.multiply_each(turned, values_BNIO), x_BNRI @ values_BNIO, **near)


@pytest.mark.parametrize("width", [16, 40, 45])
@pytest.mark.parametrize("inputs", [1, 7, 16])
def test_padding_changes_no_bit_of_a_weighted_sum(products: Products, width: int, inputs: int) -> None:
    weights, values = torch.rand(2, 1, 7, inputs), torch.randn(2, 1, inputs, width)
    alone = products.multiply_each(weights, values)
    for more in (1, 4, 13):
        zeros, others = torch.zeros(2, 1, 7, more), torch.randn(2, 1, more, width)
        padded = torch.cat([weights, zeros], 3), torch.cat([values, others], 2)
        assert torch.equal(products.multiply_each(*padded), alone)


@pytest.mark.parametrize("width", [5, 40, 513])
def test_padding_and_company_change_no_bit_of_a_score(products: Products, width: int) -> None:
    queries, keys = torch.randn(2, 1, 5, width), torch.randn(2, 1, 9, width)
    together = products.multiply_each(queries, keys.mT)
    for some in (1, 4, 7):
        assert torch.equal(products.multiply_each(queries, keys[:, :, :some].mT), together[..., :some])
    for some in (1, 2, 3):
        assert torch.equal(products.multiply_each(queries[:, :, :some], keys.mT), together[:, :, :some])
