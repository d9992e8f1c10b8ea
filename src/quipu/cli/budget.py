"""The options of every command that may ask a model: how much it may cost, and not to ask one."""

import click

budget_option = click.option(
    "--budget",
    metavar="AMOUNT",
    help='Most to spend on models: money, tokens or calls, as in 5.00, "2M tokens" or "300 calls".',
)

no_model_option = click.option("--no-model", "has_no_model", is_flag=True, help="Ask no language model, set or not.")
