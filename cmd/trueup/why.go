// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/cmd/trueup/internal/why"
)

// tokenVariable is the environment variable with the default of --token.
const tokenVariable = "TRUEUP_TOKEN"

func whyCommand() *subcommand {
	o := why.Options{}
	c := newSubcommand("why", "Show why a running controller reconciled an object, and what that did")
	c.arguments = "<kind> <name>"
	c.long = `why shows the last reconciles of an object: why each ran, what it did, what failed and in which step, and
when the next one runs. It reads them from the console of the running controller, which the controller's program adds
with console.AddToManager. The name is that of the object, with its namespace and a slash before it if several
namespaces have it.`
	c.example = `  kubectl -n shop port-forward deployment/shop-controller 8080 &
  trueup why website default/blog
  trueup why websites.example.com blog --url https://127.0.0.1:8443/console/ --token "$(kubectl create token reader)"`
	connect := consoleFlags(c, &o)
	c.flags.IntVar(&o.Runs, "runs", 3, "`number` of reconciles to show")
	c.run = func(ctx context.Context, stdout, _ io.Writer) error {
		if o.Runs <= 0 {
			return fmt.Errorf("--runs: must be greater than 0, got %d", o.Runs)
		}
		if err := connect(); err != nil {
			return err
		}
		o.Kind, o.Name = c.flags.Arg(0), c.flags.Arg(1)
		return why.Print(ctx, screen.New(stdout), o)
	}
	return c
}

// consoleFlags adds the flags that select a console. It returns a function that completes and checks them.
func consoleFlags(c *subcommand, o *why.Options) func() error {
	c.flags.StringVar(&o.URL, "url", "http://127.0.0.1:8080/console/", "`URL` of the console")
	c.flags.StringVar(
		&o.Token, "token", "", "bearer `token` for the URL (default: the environment variable "+tokenVariable+")",
	)
	c.flags.StringVar(
		&o.CAFile, "certificate-authority", "", "`file` with the certificates that the server's is checked with",
	)
	c.flags.BoolVar(
		&o.Insecure, "insecure-skip-tls-verify", false, "do not check the certificate of the server, which gets the token",
	)
	return func() error {
		if o.Insecure && o.CAFile != "" {
			return errors.New("--insecure-skip-tls-verify and --certificate-authority: at most one may be set")
		}
		if o.Token == "" {
			o.Token = os.Getenv(tokenVariable)
		}
		return nil
	}
}
