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

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
)

func rbacCommand() *subcommand {
	c := newSubcommand("rbac", "Print the role that your program needs")
	c.long = `rbac derives the permissions of your program from its reconcilers and prints them as a ClusterRole, as a Role
or as markers of Kubebuilder. Like graph, it runs your program, needs no cluster, and requires the line graph.Main.

Permissions below a WithConfig are omitted, because they usually belong to another role or cluster. To print them, name
the WithConfig with --config.

With --shards, rbac prints what a program needs whose objects are divided among several replicas, see package
trueup.dev/shards: its role, the ControllerRing of this name, and the role that the sharder needs for it.`
	c.example = `  trueup rbac --package ./cmd --name my-manager --leader-election --output config/rbac/role.yaml
  trueup rbac --package ./cmd --shards websites --output config/rbac/role.yaml
  trueup rbac --package ./cmd --markers`
	pkg := packageFlag(c)
	name := c.flags.StringP("name", "n", "manager-role", "the name of the role")
	namespace := c.flags.String("namespace", "", "print a Role in this namespace instead of a ClusterRole")
	output := c.flags.StringP("output", "o", "", "write to this file instead of standard output")
	markers := c.flags.Bool("markers", false, "print markers of Kubebuilder instead of a role")
	o := rbac.Options{}
	c.flags.BoolVar(&o.LeaderElection, "leader-election", false, "add the permissions of leader election")
	ring := c.flags.String("shards", "", "add the permissions of replicas, and print the ControllerRing of this name")
	c.flags.StringVar(&o.Config, "config", "", "print the permissions below the WithConfig of this name")
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		if *markers && *namespace != "" {
			return errors.New("--markers and --namespace exclude each other")
		}
		if *ring != "" && o.LeaderElection {
			return errors.New("--shards and --leader-election exclude each other: a manager is either sharded or elected")
		}
		o.Shards = *ring != ""
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
			if *ring != "" {
				manifests, err := ringOf(*ring, g, o)
				if err != nil {
					return err
				}
				content = append(content, manifests...)
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
	return documents(role)
}

// ringOf returns the manifests of a ControllerRing and of the role of the sharder.
func ringOf(name string, g *graph.Graph, o rbac.Options) ([]byte, error) {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || len(name) > validation.LabelValueMaxLength {
		return nil, fmt.Errorf("--shards: %q is not the name of a ring: %s", name,
			cmp.Or(strings.Join(problems, ", "), "it has more than 63 characters"))
	}
	ring, err := rbac.NewControllerRing(name, g, o)
	if err != nil {
		return nil, err
	}
	return documents(ring, ring.SharderRole())
}

// documents returns manifests as documents of YAML.
func documents(manifests ...any) (content []byte, _ error) {
	for _, manifest := range manifests {
		document, err := yaml.Marshal(manifest)
		if err != nil {
			return nil, err
		}
		content = append(append(content, "---\n"...), document...)
	}
	return content, nil
}
