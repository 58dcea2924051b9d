"""The learning service: predict now, label later, lose nothing. It needs ``pip install 'bayesvote[serve]'``."""

from bayesvote.apps.service.check import Report, check
from bayesvote.apps.service.folder import copy
from bayesvote.apps.service.server import Options, serve
from bayesvote.apps.service.types import Limits

__all__ = ["Limits", "Options", "Report", "check", "copy", "serve"]
