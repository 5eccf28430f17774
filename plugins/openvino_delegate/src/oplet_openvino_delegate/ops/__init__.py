"""One module per operator, which `oplet_openvino_delegate.translators` finds by name."""
