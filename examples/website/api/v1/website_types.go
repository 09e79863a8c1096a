// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
)

// WebsiteSpec is the desired state of a Website.
//
// +kubebuilder:validation:XValidation:rule="!has(self.languages) || self.languages.all(l, !has(l.pages) || l.pages.all(t, self.pages.exists(p, p.name == t.name)))",message="a language may only translate pages that are listed in spec.pages"
type WebsiteSpec struct {
	// Domain is the name under which the site is published, such as www.example.com. A domain that another Website has
	// published is not taken over.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+$')",message="must be at least two lower-case labels joined by dots, such as www.example.com"
	Domain string `json:"domain"`

	// Image is the image of the web server. It must serve the files in /usr/share/nginx/html on port 80.
	//
	// +optional
	// +kubebuilder:default="nginx:1.29"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// Replicas is the number of web servers.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	Replicas *int32 `json:"replicas,omitempty"`

	// ThemeRef is the ConfigMap with the theme, in the namespace of the Website. The Website does not own it: several
	// sites may share a theme. The default is a plain built-in theme.
	//
	// +optional
	ThemeRef *ThemeReference `json:"themeRef,omitempty"`

	// Pages are the pages of the site. One page must be named index.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.exists(p, p.name == 'index')",message="one page must be named index: it is what visitors of the domain see first"
	Pages []Page `json:"pages"`

	// Languages are the translations of the site. Each is served below a path that is its code.
	//
	// +optional
	// +listType=map
	// +listMapKey=code
	// +kubebuilder:validation:MaxItems=20
	Languages []Language `json:"languages,omitempty"`
}

// ThemeReference refers to a theme: a ConfigMap with the keys layout.html (a Go html/template) and style.css, both
// optional.
type ThemeReference struct {
	// Name of the ConfigMap.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Page is one page of a site.
type Page struct {
	// Name of the page. It is served as <name>.html.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and dashes, such as opening-hours"
	Name string `json:"name"`

	// Title of the page.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	Title string `json:"title"`

	// Body is the text of the page; an empty line starts a new paragraph.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Body string `json:"body,omitempty"`
}

// Language is a translation of a site. Pages that it does not translate are served in the original language.
type Language struct {
	// Code of the language, such as de or pt-br. The translation is served below /<code>/.
	//
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]{2,3}(-[a-z]{2,4})?$')",message="must be a lower-case language code, such as de or pt-br"
	Code string `json:"code"`

	// Pages are the translated pages, by the same names as in spec.pages.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Pages []Page `json:"pages,omitempty"`
}

// WebsiteStatus is the observed state of a Website.
type WebsiteStatus struct {
	apis.Status `json:",inline"`

	// URL is the published address of the site. It is empty if the site is not published.
	//
	// +optional
	URL string `json:"url,omitempty"`

	// ReadyReplicas is the number of web servers that are ready.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Languages are the codes of the rendered translations.
	//
	// +optional
	// +listType=atomic
	Languages []string `json:"languages,omitempty"`
}

// Website is a small web site: pages rendered with a theme, web servers, and a DNS record.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=site
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 50",message="metadata.name must start with a letter, have only lower-case letters, digits and dashes, and at most 50 of them: it names the Service"
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WebsiteSpec `json:"spec"`

	// +optional
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteList is a list of Websites.
//
// +kubebuilder:object:root=true
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}
