// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Set sets a field that is zero.
func Set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// SetPointer sets a field that is nil. Every object gets its own variable.
func SetPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// Pod sets the defaults of a Pod, except the defaults of admission plugins.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Pod
func Pod(pod *corev1.Pod) {
	spec := &pod.Spec
	if grace := spec.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		spec.TerminationGracePeriodSeconds = new(int64(1))
	}
	SetPointer(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			requestLimits(&c.Resources)
			if spec.HostNetwork {
				for j := range c.Ports {
					Set(&c.Ports[j].HostPort, c.Ports[j].ContainerPort)
				}
			}
		}
	}
	PodSpec(spec)
	defaultPodIPs(&pod.Status)
}

// requestLimits copies limits to missing requests. A server does this for pods only, not for templates.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Pod
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = limit.DeepCopy()
		}
	}
}

// defaultPodIPs makes podIP and the first of podIPs equal.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_PodStatus
func defaultPodIPs(status *corev1.PodStatus) {
	switch {
	case status.PodIP == "" && len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
}

// PodSpec sets the defaults of the spec of a pod or pod template.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_PodSpec
func PodSpec(spec *corev1.PodSpec) {
	Set(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	Set(&spec.DNSPolicy, corev1.DNSClusterFirst)
	Set(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	SetPointer(&spec.SecurityContext, corev1.PodSecurityContext{})
	SetPointer(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	Set(&spec.SchedulerName, corev1.DefaultSchedulerName)
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			defaultContainer(&containers[i])
		}
	}
	for i := range spec.EphemeralContainers {
		defaultContainer((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
}

// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Container, SetDefaults_Probe, SetDefaults_HTTPGetAction
func defaultContainer(c *corev1.Container) {
	Set(&c.ImagePullPolicy, pullPolicy(c.Image))
	Set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	Set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		Set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				SetPointer(&from.FileKeyRef.Optional, false)
			}
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe == nil {
			continue
		}
		Set(&probe.TimeoutSeconds, 1)
		Set(&probe.PeriodSeconds, 10)
		Set(&probe.SuccessThreshold, 1)
		Set(&probe.FailureThreshold, 3)
		if probe.GRPC != nil {
			SetPointer(&probe.GRPC.Service, "")
		}
	}
	for _, action := range httpActions(c) {
		Set(&action.Path, "/")
		Set(&action.Scheme, corev1.URISchemeHTTP)
	}
}

// httpActions returns all HTTP requests that are sent to a container.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_HTTPGetAction
func httpActions(c *corev1.Container) []*corev1.HTTPGetAction {
	var actions []*corev1.HTTPGetAction
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.HTTPGet != nil {
			actions = append(actions, probe.HTTPGet)
		}
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil && handler.HTTPGet != nil {
				actions = append(actions, handler.HTTPGet)
			}
		}
	}
	return actions
}

// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_ObjectFieldSelector
func defaultFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		Set(&ref.APIVersion, "v1")
	}
}

// imageName matches names of images, without tag and digest. A name that does not match is rejected later, or never
// found.
var imageName = regexp.MustCompile(`^(?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$`)

// pullPolicy returns Always if the tag is latest or missing.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Container
// Upstream: pkg/util/parsers/parsers.go: ParseImageName
func pullPolicy(image string) corev1.PullPolicy {
	name, _, digest := strings.Cut(image, "@")
	tag := ""
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name, tag = name[:i], name[i+1:]
	}
	if imageName.MatchString(name) && (tag == "latest" || tag == "" && !digest) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Volume, SetDefaults_SecretVolumeSource
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_ConfigMapVolumeSource
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_DownwardAPIVolumeSource, SetDefaults_ProjectedVolumeSource
func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.HostPath != nil {
		SetPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		SetPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		SetPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		SetPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultFieldRefs(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		SetPointer(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for _, source := range v.Projected.Sources {
			if source.DownwardAPI != nil {
				defaultFieldRefs(source.DownwardAPI.Items)
			}
			if source.ServiceAccountToken != nil {
				SetPointer(&source.ServiceAccountToken.ExpirationSeconds, 3600)
			}
		}
	}
	if v.Image != nil {
		Set(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
	if v.ISCSI != nil {
		Set(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		defaultClaimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec)
	}
}

// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_ObjectFieldSelector
func defaultFieldRefs(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		defaultFieldRef(items[i].FieldRef)
	}
}

// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_PersistentVolumeClaimSpec
func defaultClaimSpec(spec *corev1.PersistentVolumeClaimSpec) {
	SetPointer(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(spec.Resources.Limits)
	roundUp(spec.Resources.Requests)
}

// roundUp rounds quantities up to multiples of a thousandth.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_ResourceList
func roundUp(list corev1.ResourceList) {
	for name, q := range list {
		if rounded := q.DeepCopy(); !rounded.RoundUp(resource.Milli) {
			list[name] = rounded
		}
	}
}
