import subprocess


def test_each_template_renders_with_its_examples() -> None:
    subprocess.run(["mailroom", "render", "--all"], check=True)
