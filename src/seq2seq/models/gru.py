"""A GRU layer on the CPU whose backward pass takes one matrix product a weight, where torch's own takes one a time step.

Source of the equations: Cho et al. 2014, arXiv:1406.1078, section 2.3, in the form of ``torch.nn.GRU``: the reset gate is
applied after the recurrent product. Forward and gradient equal torch's own up to rounding.
The slope of every gate with respect to the state that leaves a step depends on what the forward pass has found alone. It
is computed for all steps at once; what is left to do step by step is one multiplication and one product.
Where torch may round the factors of products (``torch.set_float32_matmul_precision("medium")``), the weights are rounded
once a batch instead of once a step; the products come out rounded too, while states, gates and sums stay exact.
"""

from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable


def gru_layer(
    inputs: Float[Tensor, "B T I"],
    first: Float[Tensor, "B D"],
    weight_ih: Float[Tensor, "G I"],
    weight_hh: Float[Tensor, "G D"],
    bias_ih: Float[Tensor, "G"],
    bias_hh: Float[Tensor, "G"],
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B D"]]:
    """States at every position, and the last one. ``G = 3 D``: reset, update, candidate, as ``torch.nn.GRU`` stores them."""
    return _Layer.apply(inputs, first, weight_ih, weight_hh, bias_ih, bias_hh, _factor_type(inputs))


def _factor_type(values: Tensor) -> torch.dtype:
    """The type of numbers that are multiplied."""
    return torch.bfloat16 if values.dtype == torch.float32 and rounds_factors() else values.dtype


def rounds_factors() -> bool:
    """Whether products of numbers in single precision round them to bfloat16."""
    return torch.get_float32_matmul_precision() == "medium" and _has_bfloat16()


@cache
def _has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 by itself; where it does not, that is slower than single precision."""
    # Older versions of torch do not tell.
    capabilities = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


class _Layer(torch.autograd.Function):
    # Time comes first throughout, so that what belongs to one step lies together.

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        first: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
        factor: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        batch, steps, _ = inputs.shape
        size = first.shape[1]
        by_time = inputs.transpose(0, 1).to(factor).reshape(steps * batch, -1)
        gates_bias, candidate_bias = bias_hh.split((2 * size, size))
        bias = bias_ih + torch.nn.functional.pad(gates_bias, (0, size))
        read = (by_time @ weight_ih.t().to(factor)).to(inputs.dtype).add_(bias).view(steps, batch, 3 * size)
        gates = inputs.new_empty(steps, batch, 2 * size)
        recalled = inputs.new_empty(steps, batch, size)  # the candidate's recurrent part
        candidates = torch.empty_like(recalled)
        states = inputs.new_empty(steps + 1, batch, size)
        states[0] = first
        factors = states[:-1] if factor == states.dtype else torch.empty_like(recalled, dtype=factor)
        product = torch.empty(batch, 3 * size, dtype=factor)
        weight = weight_hh.t().to(factor)
        for step in range(steps):
            state, gate, candidate = states[step], gates[step], candidates[step]
            if factor != states.dtype:
                factors[step].copy_(state)
            torch.mm(factors[step], weight, out=product)
            torch.add(read[step, :, : 2 * size], product[:, : 2 * size], out=gate).sigmoid_()
            torch.add(candidate_bias, product[:, 2 * size :], out=recalled[step])
            torch.addcmul(read[step, :, 2 * size :], gate[:, :size], recalled[step], out=candidate).tanh_()
            torch.lerp(candidate, state, gate[:, size:], out=states[step + 1])
        ctx.save_for_backward(by_time, weight_ih, weight_hh, gates, recalled, candidates, states, factors)
        return states[1:].transpose(0, 1), states[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_states: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        by_time, weight_ih, weight_hh, gates, recalled, candidates, states, factors = ctx.saved_tensors
        factor, exact = factors.dtype, states.dtype
        steps, batch, size = candidates.shape
        reset, update = gates.split(size, dim=2)
        # d(pre-activation) / d(state that leaves the step), for the candidate's recurrent part, reset, update, candidate.
        # The recurrent weights see the first three of them, the input's weights the last three.
        slopes = states.new_empty(steps, batch, 4, size)
        recurrent, resets, updates, whole = slopes.unbind(2)
        kept = 1 - update
        torch.mul(candidates, candidates, out=whole).neg_().add_(1).mul_(kept)
        torch.mul(whole, reset, out=recurrent)
        torch.mul(1 - reset, recalled, out=resets).mul_(recurrent)
        torch.sub(states[:-1], candidates, out=updates).mul_(update).mul_(kept)

        weight = torch.cat((weight_hh[2 * size :], weight_hh[: 2 * size])).to(factor)
        by_step = grad_states.transpose(0, 1).contiguous()
        grads = torch.empty(steps, batch, 4 * size, dtype=factor)
        product = torch.empty(batch, size, dtype=factor)
        grad = by_step[-1] + grad_last
        for step in reversed(range(steps)):
            torch.mul(grad.unsqueeze(1), slopes[step], out=grads[step].view(batch, 4, size))
            torch.mm(grads[step, :, : 3 * size], weight, out=product)
            grad *= update[step]
            grad += product
            if step:
                grad += by_step[step - 1]

        flat = grads.view(steps * batch, 4 * size)
        of_input, of_state = flat[:, size:], flat[:, : 3 * size]
        grad_inputs = None
        if ctx.needs_input_grad[0]:
            grad_inputs = (of_input @ weight_ih.to(factor)).to(exact).view(steps, batch, -1).transpose(0, 1)
        grad_weight_hh = of_state.t() @ factors.view(steps * batch, size)
        sums = flat.sum(dim=0, dtype=exact)
        return (
            grad_inputs,
            grad,
            (of_input.t() @ by_time).to(exact),
            grad_weight_hh.to(exact).roll(-size, dims=0),
            sums[size:],
            sums[: 3 * size].roll(-size),
            None,
        )
