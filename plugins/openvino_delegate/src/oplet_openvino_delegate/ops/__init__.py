"""One module per operator; `oplet_openvino_delegate.translators` finds them by the operator's name."""
