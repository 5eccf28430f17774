"""What is asked of nodes, and what OpenVINO's nodes for them are: a module for each family of operators."""
