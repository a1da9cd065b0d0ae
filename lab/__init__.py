"""Guest kernels and booting them; nothing else in the project starts a virtual machine."""
