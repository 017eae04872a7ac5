package page

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// policy allows what comes from here and nothing else: no inline script or style, no
// frames, no HTML made from strings.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action %s; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guarded adds the headers that every answer has, and refuses a Host that is a name
// of somebody else's: a page of theirs whose name leads here (DNS rebinding) would
// read this one with the reader's own browser. An IP address cannot be such a name.
//
// writes: forms of the page's own may be sent to it.
func guarded(host string, writes bool, next http.Handler) http.Handler {
	forms, methods := "'none'", []string{http.MethodGet, http.MethodHead}
	if writes {
		forms, methods = "'self'", append(methods, http.MethodPost)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", fmt.Sprintf(policy, forms))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !ours(r.Host, host) {
			http.Error(w, fmt.Sprintf("page: this is not %.100q: ask for it by IP address, by localhost, or by the name %s", r.Host, host), http.StatusMisdirectedRequest)
			return
		}
		if !slices.Contains(methods, r.Method) {
			h.Set("Allow", strings.Join(methods, ", "))
			http.Error(w, "page: it takes only "+strings.Join(methods, ", "), http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func ours(asked, host string) bool {
	name, _, err := net.SplitHostPort(asked)
	if err != nil {
		name = asked
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || name == strings.ToLower(host)
}
