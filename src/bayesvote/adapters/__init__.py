"""Former name of :mod:`bayesvote.integrations`."""
