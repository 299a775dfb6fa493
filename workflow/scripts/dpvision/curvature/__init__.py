"""The Hessian of the training loss: its largest eigenvalue, its trace, its spectrum."""
