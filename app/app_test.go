// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"testing"

	"trueup.dev/app"
)

func TestManifestCapabilities(t *testing.T) {
	operations := &app.AdmissionCapability{Operations: []app.AdmissionAction{app.AdmissionActionAny}}
	for name, tc := range map[string]struct {
		admission                *app.AdmissionCapabilities
		wantValidation, wantMuts bool
	}{
		"none":    {},
		"neither": {admission: &app.AdmissionCapabilities{}},
		"without any operation": {
			admission: &app.AdmissionCapabilities{Validation: &app.AdmissionCapability{}, Mutation: &app.AdmissionCapability{}},
		},
		"validation of any": {admission: &app.AdmissionCapabilities{Validation: operations}, wantValidation: true},
		"mutation of any":   {admission: &app.AdmissionCapabilities{Mutation: operations}, wantMuts: true},
		"validation and mutation": {
			admission: &app.AdmissionCapabilities{Validation: operations, Mutation: operations}, wantValidation: true,
			wantMuts: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind := app.ManifestVersionKind{Kind: "MyKind", Admission: tc.admission}
			if got := kind.SupportsValidation(); got != tc.wantValidation {
				t.Errorf("SupportsValidation() = %t, want %t", got, tc.wantValidation)
			}
			if got := kind.SupportsMutation(); got != tc.wantMuts {
				t.Errorf("SupportsMutation() = %t, want %t", got, tc.wantMuts)
			}
		})
	}
}
