// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestPatch(t *testing.T) {
	with := func(generation int64, fields map[string]string) *fixture.Resource {
		return newResource(func(r *fixture.Resource) { r.Generation, r.Spec.Fields = generation, fields })
	}
	failing := func(marshal, unmarshal bool) *fixture.Resource {
		return newResource(func(r *fixture.Resource) { r.Spec.ErrOnMarshal, r.Spec.ErrOnUnmarshal = marshal, unmarshal })
	}
	for name, tc := range map[string]struct {
		base, update, rebase client.Object
		newErr, applyErr     error
		want                 client.Object
	}{
		"nothing": {base: newResource(), update: newResource(), rebase: newResource(), want: newResource()},
		"added": {
			base: with(1, nil), update: with(1, map[string]string{"a": "1"}), rebase: with(1, nil),
			want: with(1, map[string]string{"a": "1"}),
		},
		"removed": {
			base: with(1, map[string]string{"a": "1", "b": "2"}), update: with(1, map[string]string{"b": "2"}),
			rebase: with(1, map[string]string{"a": "3", "b": "2"}), want: with(1, map[string]string{"b": "2"}),
		},
		"unrelated fields": {
			base: with(1, map[string]string{"a": "1"}), update: with(1, map[string]string{"a": "2"}),
			rebase: with(1, map[string]string{"a": "1", "b": "2"}), want: with(1, map[string]string{"a": "2", "b": "2"}),
		},
		"another generation": {
			base: with(1, nil), update: with(1, map[string]string{"a": "1"}), rebase: with(2, nil),
			applyErr: reconcilers.PatchGenerationMismatch, want: with(2, nil),
		},
		"base cannot be encoded":   {base: failing(true, false), update: newResource(), newErr: fixture.ErrMarshal},
		"update cannot be encoded": {base: newResource(), update: failing(true, false), newErr: fixture.ErrMarshal},
		"rebase cannot be encoded": {
			base: newResource(), update: newResource(), rebase: failing(true, false), applyErr: fixture.ErrMarshal,
			want: failing(true, false),
		},
		"result cannot be decoded": {
			base: newResource(), update: newResource(), rebase: failing(false, true), applyErr: fixture.ErrUnmarshal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := reconcilers.NewPatch(tc.base, tc.update)
			wantErr(t, tc.newErr, err)
			if err != nil {
				return
			}
			wantErr(t, tc.applyErr, patch.Apply(tc.rebase))
			if tc.want != nil {
				equal(t, "patched object", tc.want, tc.rebase)
			}
		})
	}
	wantText(t, "patch generation did not match target", reconcilers.PatchGenerationMismatch)

	t.Run("cannot be applied", func(t *testing.T) {
		patch, err := reconcilers.NewPatch(
			with(1, map[string]string{"a": "1", "b": "2"}), with(1, map[string]string{"b": "2"}),
		)
		wantErr(t, nil, err)
		rebase := with(1, map[string]string{"b": "2"})
		if err := patch.Apply(rebase); err == nil {
			t.Error("removing a missing field did not fail")
		}
		equal(t, "object, which must not change", with(1, map[string]string{"b": "2"}), rebase)
	})
}
