// SPDX-License-Identifier: Apache-2.0

// Package manifest builds the desired objects of a Website. It does not access the cluster; the controller compares
// them with the current objects.
package manifest

import (
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/render"
)

// Files are the files of a site: by path, which is the code of the language or empty for the original, and by name.
type Files = map[string]map[string]string

const (
	documentRoot  = "/usr/share/nginx/html"
	contentSuffix = "-content"
	languageInfix = "-lang-"
)

// ContentName returns the name of the ConfigMap with the pages in a language; "" is the original one.
func ContentName(site *websitev1.Website, language string) string {
	if language == "" {
		return site.Name + contentSuffix
	}
	return site.Name + languageInfix + language
}

// FormerStyleName returns the name of the ConfigMap in which the first release kept the style sheet.
func FormerStyleName(site *websitev1.Website) string { return site.Name + "-style" }

// IsLanguage reports whether a name is a result of ContentName for a language.
func IsLanguage(site *websitev1.Website, name string) bool {
	return strings.HasPrefix(name, site.Name+languageInfix)
}

// LanguageOf returns the code of the language in a result of ContentName. The name of a site may contain the infix, a
// code cannot.
func LanguageOf(name string) string {
	return name[strings.LastIndex(name, languageInfix)+len(languageInfix):]
}

// Content returns the ConfigMap with the files of one language.
func Content(site *websitev1.Website, language string, files map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: childMeta(site, ContentName(site, language)), Data: files}
}

// Deployment returns the Deployment of the web servers. All files are mounted as one tree.
func Deployment(site *websitev1.Website, files Files) *appsv1.Deployment {
	var sources []corev1.VolumeProjection
	for _, language := range slices.Sorted(maps.Keys(files)) {
		source := &corev1.ConfigMapProjection{}
		source.Name = ContentName(site, language)
		for _, file := range slices.Sorted(maps.Keys(files[language])) {
			source.Items = append(source.Items, corev1.KeyToPath{Key: file, Path: path.Join(language, file)})
		}
		sources = append(sources, corev1.VolumeProjection{ConfigMap: source})
	}
	return &appsv1.Deployment{
		ObjectMeta: childMeta(site, site.Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: site.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: selector(site)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      selector(site),
					Annotations: map[string]string{websitev1.AnnotationContentHash: render.Hash(files)},
				},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name:         "web",
						Image:        site.Spec.Image,
						Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
						VolumeMounts: []corev1.VolumeMount{{Name: "content", MountPath: documentRoot, ReadOnly: true}},
					}},
					Volumes: []corev1.Volume{{
						Name:         "content",
						VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}},
					}},
				},
			},
		},
	}
}

// Service returns the Service in front of the web servers.
func Service(site *websitev1.Website) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: childMeta(site, site.Name),
		Spec: corev1.ServiceSpec{
			Selector: selector(site),
			Ports: []corev1.ServicePort{{
				Name:       "http",
				Protocol:   corev1.ProtocolTCP,
				Port:       80,
				TargetPort: intstr.FromString("http"),
			}},
		},
	}
}

func childMeta(site *websitev1.Website, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: site.Namespace, Name: name, Labels: selector(site)}
}

func selector(site *websitev1.Website) map[string]string {
	return map[string]string{websitev1.LabelWebsite: site.Name}
}
