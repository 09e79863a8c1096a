// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"trueup.dev/console"
)

// Permissions prints the permissions of a running controller, the missing ones first.
func Permissions(ctx context.Context, out io.Writer, o Options) error {
	c, err := newClient(o)
	if err != nil {
		return err
	}
	var found console.Permissions
	if err := c.get(ctx, "permissions", &found); err != nil {
		return err
	}
	user := found.User
	if user == "" {
		user = "the controller"
	}
	if found.Error != "" {
		fmt.Fprintf(out, "The API server could not be asked: %s\n", found.Error)
	}
	for _, name := range found.Undescribed {
		fmt.Fprintf(out, "Controller %s does not declare what it needs: only its calls are known.\n", name)
	}
	fmt.Fprintf(
		out, "%d missing, %d unused, of %s in %s\n\n",
		found.Missing, found.Unused, user, strings.Join(found.Namespaces, ", "),
	)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STATE\tDECLARED\tUSED\tRESOURCE\tVERBS")
	for _, p := range found.Permissions {
		resource := p.Resource
		if p.Group != "" {
			resource += " " + p.Group
		}
		verbs := strings.Join(p.Verbs, ", ")
		switch {
		case len(p.MissingIn) > 0 && len(p.MissingIn) < len(found.Namespaces):
			verbs += " (missing in " + strings.Join(p.MissingIn, ", ") + ")"
		case p.NamesOnly:
			verbs += " (granted for some names of objects)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.State, yesNo(p.Declared), yesNo(p.Used), resource, verbs)
	}
	return table.Flush()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
