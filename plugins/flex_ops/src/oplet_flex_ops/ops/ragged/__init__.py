"""Ops on ragged tensors (values plus row splits per level), and conversions to dense and sparse tensors."""
