// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
)

func rbacCommand() *subcommand {
	c := newSubcommand("rbac", "Print the role that your program needs")
	c.long = `rbac derives the permissions of your program from its reconcilers and prints them as a ClusterRole, as a Role
or as markers of Kubebuilder. Like graph, it runs your program, needs no cluster, and requires the line graph.Main.

Permissions below a WithConfig are omitted, because they usually belong to another role or cluster. To print them, name
the WithConfig with --config.`
	c.example = `  trueup rbac --package ./cmd --name my-manager --leader-election --output config/rbac/role.yaml
  trueup rbac --package ./cmd --markers`
	pkg := packageFlag(c)
	name := c.flags.StringP("name", "n", "manager-role", "the name of the role")
	namespace := c.flags.String("namespace", "", "print a Role in this namespace instead of a ClusterRole")
	output := c.flags.StringP("output", "o", "", "write to this file instead of standard output")
	markers := c.flags.Bool("markers", false, "print markers of Kubebuilder instead of a role")
	o := rbac.Options{}
	c.flags.BoolVar(&o.LeaderElection, "leader-election", false, "add the permissions of leader election")
	c.flags.StringVar(&o.Config, "config", "", "print the permissions below the WithConfig of this name")
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		if *markers && *namespace != "" {
			return errors.New("--markers and --namespace exclude each other")
		}
		g, err := graphOf(ctx, *pkg, stderr)
		if err != nil {
			return err
		}
		declared, err := rbac.Declared(g, o)
		if err != nil {
			return err
		}
		if len(declared) == 0 && o.Config != "" {
			return fmt.Errorf("--config: no WithConfig %q declares permissions; those that do: %s",
				o.Config, cmp.Or(strings.Join(rbac.Configs(g), ", "), "none"))
		}
		if o.Config == "" {
			noteConfigs(stderr, g)
		}
		content := []byte(declared.Markers())
		if !*markers {
			if content, err = roleOf(declared, *namespace, *name); err != nil {
				return err
			}
		}
		if *output != "" {
			if err := os.MkdirAll(filepath.Dir(*output), 0o755); err != nil {
				return err
			}
			return os.WriteFile(*output, content, 0o644) //nolint:gosec // a manifest, which others may read
		}
		_, err = stdout.Write(content)
		return err
	}
	return c
}

// noteConfigs lists the WithConfig reconcilers whose permissions are omitted.
func noteConfigs(stderr io.Writer, g *graph.Graph) {
	for _, config := range rbac.Configs(g) {
		fmt.Fprintf(stderr, "note: the permissions below WithConfig %q are omitted; see --config\n", config)
	}
}

func roleOf(declared rbac.Permissions, namespace, name string) ([]byte, error) {
	var role any = declared.ClusterRole(name)
	if namespace != "" {
		role = declared.Role(namespace, name)
	}
	content, err := yaml.Marshal(role)
	return append([]byte("---\n"), content...), err
}
