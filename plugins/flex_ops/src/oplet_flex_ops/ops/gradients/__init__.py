"""What training on the device needs: gradients of operators, losses, variables and the steps of optimizers.

Small operators share a module by kind; each is a constant there, named like the operator.
"""
