// SPDX-License-Identifier: Apache-2.0

package app

import "encoding/json"

// This file has what manifests that Grafana App SDK generates contain, and this module does not use.

// Manifest is the description of an app. It is the [ManifestData] itself: manifests that are not part of the program
// are decoded to one.
type Manifest = ManifestData

// NewEmbeddedManifest returns the manifest.
func NewEmbeddedManifest(data ManifestData) Manifest { return data }

// ValidationCapability is the [AdmissionCapability] for validation.
type ValidationCapability = AdmissionCapability

// MutationCapability is the [AdmissionCapability] for mutation.
type MutationCapability = AdmissionCapability

// AdmissionOperation is an [AdmissionAction].
type AdmissionOperation = AdmissionAction

// Operations of admission requests in manifests.
const (
	AdmissionOperationAny     = AdmissionActionAny
	AdmissionOperationCreate  = AdmissionActionCreate
	AdmissionOperationUpdate  = AdmissionActionUpdate
	AdmissionOperationDelete  = AdmissionActionDelete
	AdmissionOperationConnect = AdmissionActionConnect
)

// VersionSchema is the schema of a kind in one version, as JSON of OpenAPI.
type VersionSchema = json.RawMessage

// Permissions are permissions for kinds of other apps.
type Permissions struct {
	AccessKinds []KindPermission `json:"accessKinds,omitempty"`
}

// KindPermission is the permission for one kind.
type KindPermission struct {
	Group    string                 `json:"group"`
	Resource string                 `json:"resource"`
	Actions  []KindPermissionAction `json:"actions,omitempty"`
}

// KindPermissionAction is a verb of the Kubernetes API.
type KindPermissionAction string

// ManifestOperatorInfo is where the operator of an app is reached.
type ManifestOperatorInfo struct {
	URL      string                             `json:"url"`
	Webhooks *ManifestOperatorWebhookProperties `json:"webhooks,omitempty"`
}

// ManifestOperatorWebhookProperties are the paths of webhooks. An operator.Runner serves /convert, /validate and
// /mutate, whatever is written here.
type ManifestOperatorWebhookProperties struct {
	ConversionPath string `json:"conversionPath"`
	ValidationPath string `json:"validationPath"`
	MutationPath   string `json:"mutationPath"`
}

// ManifestRole is a role that an app defines.
type ManifestRole struct {
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Kinds       []ManifestRoleKind `json:"kinds"`
	Routes      []string           `json:"routes"`
}

// ManifestRoleKind is the permission of a role for one kind. Either Verbs or PermissionSet is set.
type ManifestRoleKind struct {
	Kind          string   `json:"kind"`
	Verbs         []string `json:"verbs,omitempty"`
	PermissionSet *string  `json:"permissionSet,omitempty"`
}

// Values of ManifestRoleKind.PermissionSet.
const (
	ManifestRolePermissionSetViewer = "viewer"
	ManifestRolePermissionSetEditor = "editor"
	ManifestRolePermissionSetAdmin  = "admin"
)

// ManifestRoleBindings are the roles of groups of users.
type ManifestRoleBindings struct {
	Viewer     []string            `json:"viewer"`
	Editor     []string            `json:"editor"`
	Admin      []string            `json:"admin"`
	Additional map[string][]string `json:"additional,omitempty"`
}

// ManifestVersionKindAdditionalPrinterColumn is a column that kubectl prints.
type ManifestVersionKindAdditionalPrinterColumn struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`
	Priority    *int32 `json:"priority,omitempty"`
	JSONPath    string `json:"jsonPath"`
}

// ManifestVersionKindSearch configures the search for objects of a kind. Nil means true.
type ManifestVersionKindSearch struct {
	Endpoint *bool `json:"endpoint,omitempty"`
	Trash    *bool `json:"trash,omitempty"`
}

// ManifestVersionKindSearchField is a field by which users search.
type ManifestVersionKindSearchField struct {
	Name             string   `json:"name"`
	Path             string   `json:"path,omitempty"`
	Type             string   `json:"type"`
	Array            bool     `json:"array,omitempty"`
	Capabilities     []string `json:"capabilities"`
	EmitZeroIfAbsent bool     `json:"emitZeroIfAbsent,omitempty"`
	Description      string   `json:"description,omitempty"`
}
