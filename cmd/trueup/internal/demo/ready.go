// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/cmd/trueup/internal/screen"
)

// crowd is the number of sites above which intermediate states are not printed.
const crowd = 12

// watchReady shows that every site becomes ready.
func (d *demo) watchReady(ctx context.Context) error {
	d.Step("Wait until %s become ready", these(len(d.sites), "Website"))
	width, shown, done := d.widest(), map[types.NamespacedName]string{}, 0
	err := d.observer.await(ctx, d.timeout, func(ctx context.Context) (string, error) {
		var waiting []string
		for _, key := range d.sites {
			v, err := d.view(ctx, d.observer, key)
			if err != nil {
				return "", err
			}
			state, ready := "not observed yet", false
			if v != nil {
				state, ready = v.pending(), v.pending() == ""
			}
			if !ready {
				waiting = append(waiting, fmt.Sprintf("Website %s is not ready: %s", d.label(key), state))
			}
			if seen, ok := shown[key]; ok && seen == state || v == nil {
				continue
			}
			shown[key] = state
			switch name := fmt.Sprintf("%-*s", width, d.label(key)); {
			case ready:
				done++
				d.made.add(v)
				d.Done("%s  %s at %s  %s", name, d.Paint(screen.Green, "Ready"), v.site.Status.URL,
					d.Paint(screen.Faint, strings.Join([]string{v.servers(), count(len(v.configMaps), "ConfigMap")}, ", ")))
			case len(d.sites) < crowd:
				d.Progress("%s  %s", name, state)
			}
		}
		return strings.Join(waiting, "; "), nil
	})
	return err
}

// these formats all objects of a kind: "the Website", "all 4 Websites".
func these(n int, thing string) string {
	if n == 1 {
		return "the " + thing
	}
	return fmt.Sprintf("all %d %ss", n, thing)
}
