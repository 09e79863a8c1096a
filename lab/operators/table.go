// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"slices"
	"strings"
)

// Table formats results as Markdown: the modules, the controllers and the findings.
func Table(results []Result) (string, error) {
	var b strings.Builder
	b.WriteString("| module | version | license |\n|---|---|---|\n")
	var modules []string
	for _, r := range results {
		if slices.Contains(modules, r.Module) {
			continue
		}
		modules = append(modules, r.Module)
		license, err := licenseOf(r.Module)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Module, r.Version, license)
	}
	b.WriteString("\n| controller | test | lines | points | schedules | time | outcome |\n|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		outcome := "certificate"
		if r.Finding != "" {
			outcome = r.Finding
		} else if len(r.LeftOut) > 0 {
			outcome = "certificate, except for what is left out"
		}
		fmt.Fprintf(
			&b, "| %s: %s | `%s` | %d | %d | %d | %.1f s | %s |\n", name(r.Module), r.Controller, r.Test, r.Lines, r.Points,
			r.Schedules, r.Seconds, outcome,
		)
	}
	for _, r := range results {
		if r.Finding == "" && len(r.LeftOut) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n**%s: %s**\n\n", name(r.Module), r.Controller)
		if r.Finding != "" {
			fmt.Fprintf(&b, "- %s: %s\n- Replay: `go test ./%s -run '^%s$' -converge.replay='%s'`\n", r.Finding, r.Observed,
				r.Directory, r.Test, r.Replay)
		}
		if r.Server != "" {
			fmt.Fprintf(&b, "- With a real API server: `go test ./%s -run '^%s$'`\n", r.Directory, r.Server)
		}
		if r.Issue != "" {
			fmt.Fprintf(&b, "- Issue: %s\n", r.Issue)
		}
		for _, line := range r.LeftOut {
			fmt.Fprintf(&b, "- Left out: %s\n", line)
		}
	}
	return b.String(), nil
}

// name is the last element of the path of a module, without its major version.
func name(module string) string {
	elements := strings.Split(module, "/")
	last := elements[len(elements)-1]
	if len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		last = elements[len(elements)-2]
	}
	return last
}
