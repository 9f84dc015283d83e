"""The verbs of the ``neardup`` command, a module each: ``add_arguments(parser)`` and ``run(arguments)``."""
