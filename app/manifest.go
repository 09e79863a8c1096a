// SPDX-License-Identifier: Apache-2.0

package app

import (
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// ManifestData describes an app: its kinds, and the requests that it handles for them.
type ManifestData struct {
	// AppName is the name of the app.
	AppName string `json:"appName"`
	// Group is the API group of the kinds.
	Group string `json:"group"`
	// Versions are the versions of the group.
	Versions []ManifestVersion `json:"versions"`
	// PreferredVersion is the storage version.
	PreferredVersion string `json:"preferredVersion,omitempty"`

	// The following fields are for Grafana, and for other readers of manifests. This module does not use them.

	// AppDisplayName is the name of the app for users.
	AppDisplayName string `json:"appDisplayName,omitempty"`
	// ExtraPermissions are the permissions for kinds of other apps.
	ExtraPermissions *Permissions `json:"extraPermissions,omitempty"`
	// Operator is where the operator of the app is reached.
	Operator *ManifestOperatorInfo `json:"operator,omitempty"`
	// Roles are the roles that the app defines, by name.
	Roles map[string]ManifestRole `json:"roles,omitempty"`
	// RoleBindings are the roles of groups of users.
	RoleBindings *ManifestRoleBindings `json:"roleBindings,omitempty"`
}

// ManifestVersion is a version of an API group.
type ManifestVersion struct {
	// Name of the version, such as v1.
	Name string `json:"name"`
	// Served reports whether the API server serves this version.
	Served bool `json:"served"`
	// Kinds are the kinds in this version.
	Kinds []ManifestVersionKind `json:"kinds"`
	// Routes are the custom routes that do not belong to a kind.
	Routes ManifestVersionRoutes `json:"routes,omitzero"`
}

// ManifestVersionRoutes are the custom routes of a version, as paths of OpenAPI. The keys are paths such as /summary.
type ManifestVersionRoutes struct {
	// Namespaced are the routes in each namespace.
	Namespaced map[string]spec3.PathProps `json:"namespaced,omitempty"`
	// Cluster are the routes outside of namespaces.
	Cluster map[string]spec3.PathProps `json:"cluster,omitempty"`
	// Schemas are the schemas that the routes refer to.
	Schemas map[string]spec.Schema `json:"schemas,omitempty"`
}

// ManifestVersionKind is a kind in one version.
type ManifestVersionKind struct {
	// Kind is the name of the kind.
	Kind string `json:"kind"`
	// Plural is the name of the kind in API paths.
	Plural string `json:"plural,omitempty"`
	// Scope is Namespaced or Cluster.
	Scope string `json:"scope,omitempty"`
	// Admission lists the requests that the app handles. Nil means none.
	Admission *AdmissionCapabilities `json:"admission,omitempty"`
	// Conversion reports whether the app converts objects from and to this version.
	Conversion bool `json:"conversion,omitempty"`
	// Routes are the custom routes of each object, as paths of OpenAPI. The keys are paths such as /goto.
	Routes map[string]spec3.PathProps `json:"routes,omitempty"`

	// The following fields are for Grafana, and for other readers of manifests. This module does not use them: it reads
	// the CustomResourceDefinition.

	// Schema is the schema of the kind.
	Schema *VersionSchema `json:"schema,omitempty"`
	// SelectableFields are the fields by which clients select objects.
	SelectableFields []string `json:"selectableFields,omitempty"`
	// AdditionalPrinterColumns are the columns that kubectl prints.
	AdditionalPrinterColumns []ManifestVersionKindAdditionalPrinterColumn `json:"additionalPrinterColumns,omitempty"`
	// UserReadable reports whether users may read the objects of a cluster-scoped kind.
	UserReadable bool `json:"userReadable,omitempty"`
	// FolderScoped reports whether objects belong to folders. Nil means true.
	FolderScoped *bool `json:"folderScoped,omitempty"`
	// Search configures the search for objects.
	Search *ManifestVersionKindSearch `json:"search,omitempty"`
	// SearchFields are the fields by which users search.
	SearchFields []ManifestVersionKindSearchField `json:"searchFields,omitempty"`
}

// AdmissionCapabilities are the admission requests that an app handles.
type AdmissionCapabilities struct {
	// Validation selects the requests that the app allows or denies.
	Validation *AdmissionCapability `json:"validation,omitempty"`
	// Mutation selects the requests whose objects the app may change.
	Mutation *AdmissionCapability `json:"mutation,omitempty"`
}

// AdmissionCapability is a set of operations.
type AdmissionCapability struct {
	// Operations of requests. [AdmissionActionAny] stands for all.
	Operations []AdmissionAction `json:"operations,omitempty"`
}

// SupportsValidation reports whether the app validates requests for the kind, for any operation.
func (k ManifestVersionKind) SupportsValidation() bool {
	return k.Admission != nil && k.Admission.Validation != nil && len(k.Admission.Validation.Operations) > 0
}

// SupportsMutation reports whether the app mutates objects of the kind, for any operation.
func (k ManifestVersionKind) SupportsMutation() bool {
	return k.Admission != nil && k.Admission.Mutation != nil && len(k.Admission.Mutation.Operations) > 0
}
