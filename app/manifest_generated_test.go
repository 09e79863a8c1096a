// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/app"
)

// A manifest in the form that Grafana App SDK generates is read and written without loss, and its capabilities count.
func TestManifest_Generated(t *testing.T) {
	raw := []byte(`{"Widget":{"type":"object"}}`)
	var schema app.VersionSchema
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	manifest := app.NewEmbeddedManifest(app.ManifestData{
		AppName: "widgets", AppDisplayName: "Widgets", Group: "example.com", PreferredVersion: "v1",
		Versions: []app.ManifestVersion{{Name: "v1", Served: true, Kinds: []app.ManifestVersionKind{{
			Kind: "Widget", Plural: "widgets", Scope: "Namespaced", Schema: &schema, SelectableFields: []string{".spec.color"},
			FolderScoped: new(false), Search: &app.ManifestVersionKindSearch{Endpoint: new(true)},
			SearchFields: []app.ManifestVersionKindSearchField{
				{Name: "color", Type: "string", Capabilities: []string{"filter"}},
			},
			AdditionalPrinterColumns: []app.ManifestVersionKindAdditionalPrinterColumn{
				{Name: "Color", Type: "string", JSONPath: ".spec.color"},
			},
			Admission: &app.AdmissionCapabilities{
				Validation: &app.ValidationCapability{Operations: []app.AdmissionOperation{app.AdmissionOperationCreate}},
				Mutation:   &app.MutationCapability{Operations: []app.AdmissionOperation{app.AdmissionOperationAny}},
			},
		}}}},
		ExtraPermissions: &app.Permissions{AccessKinds: []app.KindPermission{
			{Group: "example.org", Resource: "others", Actions: []app.KindPermissionAction{"get"}},
		}},
		Operator: &app.ManifestOperatorInfo{URL: "https://widgets:9443"},
		Roles: map[string]app.ManifestRole{"widgets:reader": {Kinds: []app.ManifestRoleKind{
			{Kind: "Widget", PermissionSet: new(app.ManifestRolePermissionSetViewer)},
		}}},
		RoleBindings: &app.ManifestRoleBindings{Viewer: []string{"widgets:reader"}},
	})
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var read app.Manifest
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest, read); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if kind := read.Versions[0].Kinds[0]; !kind.SupportsValidation() || !kind.SupportsMutation() {
		t.Error("the capabilities are lost")
	}
}
