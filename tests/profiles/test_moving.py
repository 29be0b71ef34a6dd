"""The spawner class of a Hub whose users move group by group: KubeSpawner itself is made for those who have not moved."""

import asyncio
import sys

import oracle
from jupyterhub import orm
from jupyterhub.objects import Hub
from jupyterhub.user import User
from kubespawner import KubeSpawner
from traitlets.config import Config

import toolchain

sys.path.insert(0, str(toolchain.ROOT / "sdk/python/src"))

from wasmspawner import WasmSpawner
from wasmspawner.moving import MovingSpawner

CONFIG = Config(
    MovingSpawner={"groups": ["staff"]}, KubeSpawner={"namespace": "jhub", "pod_name_template": "lab-{username}"}
)


def test_a_hub_makes_kubespawner_for_users_who_have_not_moved():
    assert oracle.module.KubeSpawner is KubeSpawner, "it asks no API server here"
    session = orm.new_session_factory("sqlite:///:memory:")()
    settings = {"spawner_class": MovingSpawner, "config": CONFIG, "hub": Hub()}

    async def made(name: str, group: str):
        session.add(orm.User(name=name, groups=[orm.Group(name=group)]))
        session.commit()
        user = User(orm.User.find(session, name), settings)
        session.add(orm.Spawner(name="", user=user.orm_user))
        session.commit()
        return user._new_spawner("")

    assert type(asyncio.run(made("ada", "staff"))) is WasmSpawner
    grace = asyncio.run(made("grace", "students"))
    assert type(grace) is KubeSpawner
    assert (grace.namespace, grace.pod_name) == ("jhub", "lab-grace")
    session.close()
