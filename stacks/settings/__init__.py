"""The files in `config/`: what a stage and the pipeline are, read strictly. No CDK in here."""
