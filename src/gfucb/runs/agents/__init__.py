"""The built-in agents, fits and action selectors of the command line.

Importing this package imports all its modules, and each registers what it defines. A new agent
therefore needs only a module here.
"""

from gfucb.runs.plugins import import_submodules

import_submodules(__name__, __path__)
