// SPDX-License-Identifier: Apache-2.0

package app

// ManifestData describes an app to those who run it: its kinds, and what it does for them.
type ManifestData struct {
	// AppName is the name of the app.
	AppName string `json:"appName"`
	// Group is the API group of its kinds.
	Group string `json:"group"`
	// Versions are the versions of the group.
	Versions []ManifestVersion `json:"versions"`
	// PreferredVersion is the version that is stored.
	PreferredVersion string `json:"preferredVersion,omitempty"`
}

// ManifestVersion is a version of an API group.
type ManifestVersion struct {
	// Name of the version, such as v1.
	Name string `json:"name"`
	// Served tells whether the API serves it.
	Served bool `json:"served"`
	// Kinds are those that exist in this version.
	Kinds []ManifestVersionKind `json:"kinds"`
}

// ManifestVersionKind is a kind in one version.
type ManifestVersionKind struct {
	// Kind is the name of the kind.
	Kind string `json:"kind"`
	// Plural is its name in paths of the API.
	Plural string `json:"plural,omitempty"`
	// Scope is Namespaced or Cluster.
	Scope string `json:"scope,omitempty"`
	// Admission tells which requests the app wants to see. Nil is for none.
	Admission *AdmissionCapabilities `json:"admission,omitempty"`
	// Conversion tells whether the app converts objects from and to this version.
	Conversion bool `json:"conversion,omitempty"`
}

// AdmissionCapabilities are the requests that an app sees before they take effect.
type AdmissionCapabilities struct {
	// Validation is for requests that the app allows or denies.
	Validation *AdmissionCapability `json:"validation,omitempty"`
	// Mutation is for requests whose objects the app may change.
	Mutation *AdmissionCapability `json:"mutation,omitempty"`
}

// AdmissionCapability is a set of operations.
type AdmissionCapability struct {
	// Operations of requests. [AdmissionActionAny] stands for all.
	Operations []AdmissionAction `json:"operations,omitempty"`
}

// SupportsValidation tells whether requests for the kind have to be validated, of whatever operation.
func (k ManifestVersionKind) SupportsValidation() bool {
	return k.Admission != nil && k.Admission.Validation != nil && len(k.Admission.Validation.Operations) > 0
}

// SupportsMutation tells whether objects of the kind have to be mutated, for whatever operation.
func (k ManifestVersionKind) SupportsMutation() bool {
	return k.Admission != nil && k.Admission.Mutation != nil && len(k.Admission.Mutation.Operations) > 0
}
