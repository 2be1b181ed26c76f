"""The calls of a kotad from Python 3.9 or later; the standard library is enough.

    import kota

    world = kota.Client("http://127.0.0.1:7420")
    print(world.height("hills", 12, 4)["height"])
    floor = world.contact("hills", [[10, 20, 99]])["results"][0]["floor"]
    for event in world.locale_events("hills"):
        print(event.name, event.data)

Units are metres, seconds and degrees; vectors are in the order x y z. Each call returns an Answer;
each failure raises an Error. With numpy, binary batches return its arrays.
"""
from .version import VERSION as __version__  # first: the others send it

from .client import Client
from .events import Event, Feed
from .replica import Replica
from .transport import Answer, Error, Timeout, Unreachable

__all__ = ["Answer", "Client", "Error", "Event", "Feed", "Replica", "Timeout", "Unreachable"]
