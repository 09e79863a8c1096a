// SPDX-License-Identifier: Apache-2.0

package app

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
}

// ManifestVersion is a version of an API group.
type ManifestVersion struct {
	// Name of the version, such as v1.
	Name string `json:"name"`
	// Served reports whether the API server serves this version.
	Served bool `json:"served"`
	// Kinds are the kinds in this version.
	Kinds []ManifestVersionKind `json:"kinds"`
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
