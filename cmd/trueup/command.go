// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// subcommand is a subcommand of the tool. The tool needs no modules that the core module does not require.
type subcommand struct {
	name    string
	short   string // one line, or empty if the tool itself runs the command
	long    string
	example string
	// arguments are the names of the arguments before the flags, for example "<kind> <name>". All are required.
	arguments string
	variadic  bool // any number of arguments, between and after the flags
	flags     *pflag.FlagSet
	run       func(ctx context.Context, stdout, stderr io.Writer) error
}

// newSubcommand returns a subcommand without flags.
func newSubcommand(name, short string) *subcommand {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.Usage = func() {}
	flags.SortFlags = false
	return &subcommand{name: name, short: short, flags: flags}
}

const about = "trueup starts a disposable Kubernetes control plane on this machine, demonstrates a controller on it, " +
	"and shows why a controller reconciled an object."

// dispatch runs the subcommand in args, or prints help.
func dispatch(ctx context.Context, commands []*subcommand, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "--help")
	}
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
		_, err := fmt.Fprint(stdout, help(commands))
		return err
	}
	i := slices.IndexFunc(commands, func(c *subcommand) bool { return c.name == args[0] })
	if i < 0 {
		what := "command"
		if strings.HasPrefix(args[0], "-") {
			what = "flag"
		}
		return fmt.Errorf("unknown %s %q; see trueup --help", what, args[0])
	}
	c := commands[i]
	err := c.flags.Parse(args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprint(stdout, c.help())
		return err
	case err != nil:
		return fmt.Errorf("%w; see trueup %s --help", err, c.name)
	}
	names := strings.Fields(c.arguments)
	switch count := c.flags.NArg(); {
	case c.variadic:
	case count > len(names):
		return fmt.Errorf("unknown argument %q; see trueup %s --help", c.flags.Arg(len(names)), c.name)
	case count < len(names):
		return fmt.Errorf("%s is required; see trueup %s --help", names[count], c.name)
	}
	return c.run(ctx, stdout, stderr)
}

func help(commands []*subcommand) string {
	var b strings.Builder
	b.WriteString(about + "\n\nUsage:\n  trueup <command> [flags]\n\nCommands:\n")
	for _, c := range commands {
		if c.short != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", c.name, c.short)
		}
	}
	b.WriteString("\nUse \"trueup <command> --help\" for more information about a command.\n")
	return b.String()
}

func (c *subcommand) help() string {
	var b strings.Builder
	long := c.long
	if long == "" {
		long = c.short + "."
	}
	usage := strings.TrimSpace(c.name + " " + c.arguments)
	fmt.Fprintf(&b, "%s\n\nUsage:\n  trueup %s [flags]\n", long, usage)
	if c.example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.example)
	}
	if flags := c.flags.FlagUsages(); flags != "" {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags)
	}
	return b.String()
}
