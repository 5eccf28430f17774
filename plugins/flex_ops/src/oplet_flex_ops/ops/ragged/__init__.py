"""Ops on ragged tensors (values plus row splits per level). Conversions to dense and sparse tensors are here, too."""
