"""The learning service: it predicts now and learns when labels arrive. Needs ``pip install 'bayesvote[serve]'``."""

from bayesvote.apps.service.check import CheckReport, check
from bayesvote.apps.service.folder import copy
from bayesvote.apps.service.server import Options, serve
from bayesvote.apps.service.types import Limits

__all__ = ["CheckReport", "Limits", "Options", "check", "copy", "serve"]
