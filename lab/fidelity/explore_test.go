// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A seed determines a sequence, and many sequences contain all operations.
func TestGenerator(t *testing.T) {
	generator := newGenerator()
	verbs, patches, subresources := map[Verb]int{}, map[string]int{}, map[string]int{}
	for seed := range uint64(300) {
		sequence := generator.Sequence(seed)
		if diff := cmp.Diff(lines(sequence), lines(generator.Sequence(seed))); diff != "" {
			t.Fatalf("seed %d makes two sequences:\n%s", seed, diff)
		}
		if len(sequence) != Length {
			t.Errorf("seed %d: %d operations, want %d", seed, len(sequence), Length)
		}
		for _, o := range sequence {
			verbs[o.Verb]++
			patches[o.Patch]++
			subresources[o.Subresource]++
		}
	}
	for _, verb := range []Verb{Create, Get, List, Update, Patch, Apply, Delete, DeleteAllOf, Send} {
		if verbs[verb] < 60 {
			t.Errorf("%s: only %d of %d operations", verb, verbs[verb], 300*Length)
		}
	}
	for name := range patchTypes {
		if patches[name] < 30 {
			t.Errorf("%s patch: only %d of %d operations", name, patches[name], 300*Length)
		}
	}
	for _, name := range []string{"status", "scale", "eviction"} {
		if subresources[name] < 5 {
			t.Errorf("%s: only %d of %d operations", name, subresources[name], 300*Length)
		}
	}
}

func lines(sequence Sequence) (lines []string) {
	for _, o := range sequence {
		lines = append(lines, o.String())
	}
	return lines
}

// Divergences are found, counted, shrunk, and shown with both results.
func TestExplorer(t *testing.T) {
	ours := newOurs(t)
	explorer := &Explorer{
		Generator: Generator{Kinds: []*Kind{configMaps}},
		Parallel:  2,
		Real: func(ctx context.Context, sequence Sequence) (*Transcript, error) {
			return ours.run(ctx, "fidelity-1", sequence)
		},
		Ours: func(ctx context.Context, namespace string, sequence Sequence) (*Transcript, error) {
			s := ours.start(ctx, namespace)
			s.Client = interceptor.NewClient(s.Client, interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
					err := c.Update(ctx, object, options...)
					if len(object.GetFinalizers()) > 0 {
						object.SetFinalizers(nil)
					}
					return err
				},
			})
			return s.Run(ctx, namespace, sequence)
		},
	}
	report, err := explorer.Run(t.Context(), 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	if report.Sequences != 100 || report.Operations != 100*Length || report.Diverging == 0 || report.Diverging == 100 {
		t.Errorf("got %d sequences with %d operations, %d divergences", report.Sequences, report.Operations, report.Diverging)
	}
	if len(report.Findings) != 1 {
		t.Fatalf("got %d findings, want 1:\n%s", len(report.Findings), report)
	}
	finding := report.Findings[0]
	if finding.Count != report.Diverging {
		t.Errorf("the finding counts %d sequences of %d", finding.Count, report.Diverging)
	}
	if err := explorer.Shrink(t.Context(), finding); err != nil {
		t.Fatal(err)
	}
	if len(finding.Sequence) > 2 {
		t.Errorf("the shortest sequence has %d operations, want 2:\n%s", len(finding.Sequence), finding)
	}
	for _, want := range []string{" update ConfigMap/", "object.metadata.finalizers\n", `real: ["`, "ours: nothing"} {
		if !strings.Contains(finding.String(), want) {
			t.Errorf("the report does not contain %q:\n%s", want, finding)
		}
	}
}
