package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// bashAlone makes cobra's script for bash work without the package bash-completion, which many machines and all Macs lack.
const bashAlone = `# Where the package bash-completion is not loaded, these stand in for what is used of it below.
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    _get_comp_words_by_ref() {
        local line=${COMP_LINE:0:COMP_POINT}
        read -r -a words <<<"$line"
        if [[ $line == *[[:space:]] ]]; then words+=(""); fi
        cword=$((${#words[@]} - 1))
        cur=${words[cword]}
        prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
if ! declare -F _filedir >/dev/null 2>&1; then
    _filedir() {
        local kind=-f found
        if [[ ${1-} == -d ]]; then kind=-d; fi
        while IFS= read -r found; do COMPREPLY+=("$found"); done < <(compgen "$kind" -- "$cur")
    }
fi

`

// completionLong says at once what cobra says four times, a level further down.
const completionLong = `Print what makes a shell complete iopctl: its commands, options, and the ids that there are now. To have it in every shell:

  bash        echo 'source <(iopctl completion bash)' >>~/.bashrc
  zsh         echo 'autoload -Uz compinit && compinit && source <(iopctl completion zsh)' >>~/.zshrc
  fish        iopctl completion fish >~/.config/fish/completions/iopctl.fish
  PowerShell  Add-Content $PROFILE 'iopctl completion powershell | Out-String | Invoke-Expression'

The deb and rpm packages of iopctl bring it along.`

// completions gives root its completion command: cobra's, but with what it lacks.
func completions(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Long = completionLong
		for _, shell := range c.Commands() {
			if shell.Name() == "bash" {
				alone(shell)
			}
		}
	}
}

// alone puts bashAlone in front of what the command prints.
func alone(bash *cobra.Command) {
	script := bash.RunE
	bash.Long = "Print what makes bash complete iopctl. For this shell: source <(iopctl completion bash); for every one: iopctl completion --help."
	bash.RunE = func(c *cobra.Command, args []string) error {
		if _, err := io.WriteString(c.OutOrStdout(), bashAlone); err != nil {
			return err
		}
		return script(c, args)
	}
}
