// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"trueup.dev/cmd/trueup/internal/screen"
)

// tally counts the objects that existed when the sites were ready.
type tally struct {
	sites, configMaps, deployments, services, records int
}

func (t *tally) add(v *view) {
	t.sites++
	t.configMaps += len(v.configMaps)
	t.deployments++
	t.services++
	t.records++
}

var verbs = []string{"create", "update", "patch", "delete"}

// summary prints the objects and the API traffic of the demo.
func (d *demo) summary() {
	times, _ := d.controller.failures.seen()
	traffic := d.controller.traffic
	d.Step("Summary")

	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("objects", "for %s: %s, %s, %s, %s", count(d.made.sites, "Website"), count(d.made.configMaps, "ConfigMap"),
		count(d.made.deployments, "Deployment"), count(d.made.services, "Service"), count(d.made.records, "DNS record"))
	row("reconciles", "%d", d.controller.reconciles())
	row("API writes", "%d, and %s", traffic.Total(), count(traffic.Events(), "event"))
	row("conflicts", "%d", traffic.Conflicts())
	row("errors", "%d", times)
	row("time", "%s", time.Since(d.began).Round(10*time.Millisecond))
	table.Flush()
	fmt.Fprintln(&text)

	byResource := map[string]map[string]int{}
	var resources []string
	for _, write := range traffic.Writes() {
		if byResource[write.Resource] == nil {
			byResource[write.Resource] = map[string]int{}
			resources = append(resources, write.Resource)
		}
		byResource[write.Resource][write.Verb] = write.Times
	}
	table = tabwriter.NewWriter(&text, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "  %s\t%s\t\n", "writes", strings.Join(verbs, "\t"))
	for _, resource := range resources {
		fmt.Fprintf(table, "  %s\t", resource)
		for _, verb := range verbs {
			cell := "·"
			if n := byResource[resource][verb]; n > 0 {
				cell = fmt.Sprint(n)
			}
			fmt.Fprintf(table, "%s\t", cell)
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	d.Print(text.String())
}

// invite prints how to explore the cluster while everything keeps running.
func (d *demo) invite(kubeconfig string) {
	d.Step("Explore")
	everywhere, there := "", ""
	if namespace := d.sites[0].Namespace; namespace != rules.Namespace {
		everywhere, there = " -A", " -n "+namespace
	}
	for _, command := range []string{
		"export KUBECONFIG=" + screen.Quote(kubeconfig),
		"kubectl get websites,deployments,pods,services,configmaps" + everywhere,
		"kubectl edit website " + d.sites[0].Name + there,
		"trueup why website " + d.sites[0].Name + " --url " + d.controller.console,
	} {
		d.Print("  " + d.Paint(screen.Bold, command))
	}
	d.Print("\n  The controller keeps running. Ctrl-C stops it and removes everything.\n")
}
