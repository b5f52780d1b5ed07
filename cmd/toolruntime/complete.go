package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toolruntime/toolruntime-go/toolresult"
)

var shells = []string{"bash", "fish", "zsh"}

func completionCommand() command {
	return command{
		name: "completion", args: "SHELL",
		summary: "print a script that completes commands and flags in a shell",
		detail:  "Prints the script for bash, fish or zsh.",
		example: `source <(toolruntime completion bash)
  toolruntime completion fish > ~/.config/fish/completions/toolruntime.fish`,
		flags: func(*options, *flag.FlagSet) {},
		run:   completion,
	}
}

func completion(_ context.Context, o *options, p *printer) (bool, error) {
	shell := o.args[0]
	if !slices.Contains(shells, shell) {
		return false, &toolresult.InputError{Field: "completion", Rule: "must be for " + strings.Join(shells, ", ")}
	}
	p.text(func(w io.Writer) {
		switch shell {
		case "fish":
			completeFish(w)
		case "zsh":
			fmt.Fprint(w, "#compdef toolruntime\nautoload -U +X bashcompinit && bashcompinit\n")
			completeBash(w)
		default:
			completeBash(w)
		}
	})
	return true, nil
}

// completeBash completes the words of the commands, the flags of the command that
// has been named, and files where a flag or an argument wants one.
func completeBash(w io.Writer) {
	fmt.Fprint(w, "_toolruntime() {\n  local cur=\"${COMP_WORDS[COMP_CWORD]}\" line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\" words\n  case \"$line \" in\n")
	for _, c := range commands() {
		words := flagWords(c)
		if c.name == "completion" {
			words = shells
		}
		fmt.Fprintf(w, "  %s*) words=%q ;;\n", strings.ReplaceAll(c.name, " ", "\\ ")+"\\ ", strings.Join(words, " "))
	}
	for _, g := range groups() {
		fmt.Fprintf(w, "  %s\\ ) words=%q ;;\n", g, strings.Join(seconds(g), " "))
	}
	fmt.Fprintf(w, "  *) words=%q ;;\n  esac\n", strings.Join(append(firsts(), "help"), " "))
	fmt.Fprint(w, "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _toolruntime toolruntime\n")
}

func completeFish(w io.Writer) {
	for _, word := range append(firsts(), "help") {
		summary := ""
		if c, _, ok := find([]string{word}); ok {
			summary = c.summary
		}
		fmt.Fprintf(w, "complete -c toolruntime -n __fish_use_subcommand -f -a %s -d %s\n", word, fishQuote(summary))
	}
	for _, g := range groups() {
		fmt.Fprintf(w, "complete -c toolruntime -n '__fish_seen_subcommand_from %s' -f -a %s\n", g, fishQuote(strings.Join(seconds(g), " ")))
	}
	for _, c := range commands() {
		words := strings.Fields(c.name)
		for _, f := range c.flagList() {
			option := ""
			if f.value != "" {
				option = " -r"
			}
			fmt.Fprintf(w, "complete -c toolruntime -n '__fish_seen_subcommand_from %s' -l %s%s -d %s\n", words[len(words)-1], f.name, option, fishQuote(f.text))
		}
	}
}

func fishQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `\'`) + "'" }

func flagWords(c command) (words []string) {
	for _, f := range c.flagList() {
		words = append(words, "--"+f.name)
	}
	return words
}

// firsts are the words with which commands begin.
func firsts() (words []string) {
	for _, c := range commands() {
		first, _, _ := strings.Cut(c.name, " ")
		if !slices.Contains(words, first) {
			words = append(words, first)
		}
	}
	return words
}

func groups() []string {
	return slices.DeleteFunc(firsts(), func(w string) bool { return len(group(w)) == 0 })
}

func seconds(g string) (words []string) {
	for _, c := range group(g) {
		_, second, _ := strings.Cut(c.name, " ")
		words = append(words, second)
	}
	return words
}
