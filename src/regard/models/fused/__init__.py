"""A Transformer in training with everything between its products in one pass each, by Triton, for a GPU.

`Fused(model)(source, target, lengths)` gives the logits that the model itself gives, from the same parameters, and
their gradients; `network.obstacle(model, device)` says what stands in the way.
"""
