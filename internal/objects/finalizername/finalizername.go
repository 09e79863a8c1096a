// SPDX-License-Identifier: Apache-2.0

// Package finalizername validates names of finalizers.
package finalizername

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// reserved are names with a meaning of their own for Kubernetes.
var reserved = []string{
	metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes),
}

// Fault returns why a name is not the name of a finalizer of a controller, "" if it is. The API server accepts a name
// without a domain for custom resources, with a warning, and refuses it for built-in kinds.
func Fault(name string, builtIn bool) string {
	faults := kvalidation.IsQualifiedName(name)
	switch {
	case strings.Contains(name, "/"):
	case slices.Contains(reserved, name):
		faults = append(faults, "it is reserved by Kubernetes")
	case builtIn && name != "":
		faults = append(faults, "for built-in kinds, it must have a domain prefix")
	}
	return strings.Join(faults, "; ")
}
