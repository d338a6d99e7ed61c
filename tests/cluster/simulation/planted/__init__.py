"""Protocol bugs planted into the real code: the simulator has to catch every one."""
