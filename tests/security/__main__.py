"""Print the tests of the security suite, for `make security`."""

from tests.security.items import all_tests

outside = [one for one in all_tests() if not one.startswith("tests/security/")]
print(*outside)
