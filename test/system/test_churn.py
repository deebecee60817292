# SPDX-License-Identifier: Apache-2.0
"""
test/system/test_churn.py - random operations on pods and containers, while the daemon is killed again and again

Env:   HAWSER_SEED: another order of operations.
"""
import os

import pytest

pytest.importorskip("grpc", reason="python3-grpcio is not installed")
pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed")
from churn import Churn
from containers import containers  # noqa: F401, a fixture

SEED = os.environ.get("HAWSER_SEED", "1")
OPERATIONS = 500


def test_500_random_operations_and_kills_end_in_what_the_clients_have_asked_for(containers):
    churn = Churn(containers(), SEED)
    churn.run(OPERATIONS)
    churn.compare()
    churn.remove_all()
    churn.compare()
