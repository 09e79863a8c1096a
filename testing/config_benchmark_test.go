// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// BenchmarkExpectConfig is what a case costs beside the reconciler.
func BenchmarkExpectConfig(b *testing.B) {
	create := func(ctx context.Context, c reconcilers.Config) error {
		c.Recorder.Event(theMap(), corev1.EventTypeNormal, "Painted", "it is blue now")
		return c.Create(ctx, theMap(renamed("new")))
	}
	for name, bb := range map[string]struct {
		config ExpectConfig
		do     func(context.Context, reconcilers.Config) error
	}{
		"Empty": {},
		"Given": {config: *newAssertConfig("")},
		"Used": {
			config: ExpectConfig{
				GivenObjects:  []client.Object{theMap(), theResource()},
				ExpectCreates: []client.Object{theMap(renamed("new"))},
				ExpectEvents:  []Event{NewEvent(theMap(), assertScheme, corev1.EventTypeNormal, "Painted", "it is blue now")},
			},
			do: create,
		},
		"Realistic": {
			config: ExpectConfig{
				Realistic:     true,
				GivenObjects:  []client.Object{theMap(), theResource()},
				ExpectCreates: []client.Object{theMap(renamed("new"))},
				ExpectEvents:  []Event{NewEvent(theMap(), assertScheme, corev1.EventTypeNormal, "Painted", "it is blue now")},
			},
			do: create,
		},
	} {
		b.Run(name, func(b *testing.B) {
			bb.config.Scheme = assertScheme
			b.ReportAllocs()
			for b.Loop() {
				c := bb.config
				config := c.Config()
				if bb.do != nil {
					if err := bb.do(b.Context(), config); err != nil {
						b.Fatal(err)
					}
				}
				c.AssertExpectations(nil)
				if len(c.observedErrors) > 0 {
					b.Fatal(c.observedErrors)
				}
			}
		})
	}
}
