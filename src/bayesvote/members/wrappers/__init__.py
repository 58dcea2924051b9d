"""Banks that wrap one other bank: freeze it, average its members, or change the rows that it sees."""

from bayesvote.members.wrappers.committees import Committees
from bayesvote.members.wrappers.compact import Compact
from bayesvote.members.wrappers.frozen import Frozen, pretrain
from bayesvote.members.wrappers.scaled import Scaled, scaled

__all__ = ["Committees", "Compact", "Frozen", "Scaled", "pretrain", "scaled"]
