// SPDX-License-Identifier: Apache-2.0

package specs

import (
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// meaning is what a text stands for, with good values, and bad ones that schemas often accept.
type meaning struct {
	formats []string
	// names are ends of names of properties, in lower case.
	names []string
	// is reports whether a text has this meaning. Nil if that cannot be decided.
	is        func(string) bool
	good, bad []string
}

var meanings = []meaning{
	{
		formats: []string{"date-time"}, names: []string{"timestamp"},
		is:   func(s string) bool { _, err := time.Parse(time.RFC3339, s); return err == nil },
		good: []string{"2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"}, bad: []string{"tomorrow"},
	},
	{
		formats: []string{"date"},
		is:      func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil },
		good:    []string{"2030-01-01", "2031-01-01"}, bad: []string{"tomorrow"},
	},
	{
		names: []string{"image"}, is: regexp.MustCompile(`^[a-z0-9./-]+[/:@][a-z0-9.:@-]+$`).MatchString,
		good: []string{"example.com/app:v2", "example.com/other:v3"}, bad: []string{"Not An Image:"},
	},
	{
		formats: []string{"duration"}, names: []string{"timeout", "interval", "duration", "period"},
		is:   func(s string) bool { _, err := time.ParseDuration(s); return err == nil && s != "0" },
		good: []string{"20s", "1m", "2h"}, bad: []string{"soon", "-1s"},
	},
	{
		names: []string{"schedule", "cron"}, is: regexp.MustCompile(`^(@\w+|\S+( \S+){4})$`).MatchString,
		good: []string{"*/10 * * * *", "0 3 * * *"}, bad: []string{"not a schedule"},
	},
	{
		formats: []string{"ipv4", "ip"}, is: func(s string) bool { return net.ParseIP(s) != nil },
		good: []string{"10.0.0.7", "10.0.0.8"}, bad: []string{"10.0.0.777"},
	},
	{formats: []string{"ipv6"}, good: []string{"fd00::7", "fd00::8"}, bad: []string{"fd00::zz"}},
	{
		formats: []string{"cidr"}, names: []string{"cidr"},
		is:   func(s string) bool { _, _, err := net.ParseCIDR(s); return err == nil },
		good: []string{"10.1.0.0/16", "10.2.0.0/16"}, bad: []string{"10.1.0.0/99"},
	},
	{
		formats: []string{"uri"}, names: []string{"url", "uri", "endpoint"},
		is:   func(s string) bool { u, err := url.Parse(s); return err == nil && u.Scheme != "" && u.Host != "" },
		good: []string{"https://other.example.com", "https://third.example.com/path"}, bad: []string{"::"},
	},
	{formats: []string{"email"}, names: []string{"email"}, good: []string{"a@example.com", "b@example.com"}},
	{
		formats: []string{"uuid"},
		good:    []string{"123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174001"},
	},
	{formats: []string{"byte"}, good: []string{"b25l", "dHdv"}, bad: []string{"?"}},
	{
		formats: []string{"hostname"}, names: []string{"host", "hostname", "domain", "fqdn"},
		is:   regexp.MustCompile(`^([a-z0-9-]+\.)+[a-z]+$`).MatchString,
		good: []string{"other.example.com", "third.example.com"}, bad: []string{"Not.A..Host"},
	},
	{
		names: []string{"storage", "memory", "cpu", "capacity", "requests", "limits"}, is: isQuantity,
		good: []string{"2Gi", "3Gi"}, bad: []string{"lots", "-1"},
	},
	{
		names: []string{"version"}, is: regexp.MustCompile(`^(v\d+|v?\d+(\.\d+)+)$`).MatchString,
		good: []string{"1.2.3", "1.3.0", "2.0.0"}, bad: []string{"latest?"},
	},
}

func isQuantity(s string) bool {
	_, err := resource.ParseQuantity(s)
	return err == nil && strings.TrimLeft(s, "0123456789") != ""
}

// quantityPattern identifies the schema of quantities.
const quantityPattern = `(([KMGTPE]i)|`

// meaningOf guesses what a text stands for: by its format, then by its present value, then by its name.
func meaningOf(schema *apiextensionsv1.JSONSchemaProps, name, present string) meaning {
	for _, m := range meanings {
		for _, format := range m.formats {
			if schema.Format == format {
				return m
			}
		}
	}
	if strings.Contains(schema.Pattern, quantityPattern) {
		return meaning{good: []string{"2Gi", "3Gi", "500Mi"}, bad: []string{"-1"}}
	}
	if schema.XIntOrString {
		return meaning{good: []string{"50%", "25%"}, bad: []string{"many"}}
	}
	if present != "" {
		for _, m := range meanings {
			if m.is != nil && m.is(present) {
				return m
			}
		}
		return meaning{}
	}
	for _, m := range meanings {
		for _, end := range m.names {
			if strings.HasSuffix(strings.ToLower(name), end) {
				return m
			}
		}
	}
	return meaning{}
}
