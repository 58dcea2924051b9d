"""The learning service: predict now, label later, lose nothing. It needs ``pip install 'bayesvote[serve]'``."""

from bayesvote.service.check import Report, check
from bayesvote.service.folder import copy
from bayesvote.service.server import Options, serve
from bayesvote.service.types import Limits

__all__ = ["Limits", "Options", "Report", "check", "copy", "serve"]
