package replicator

import (
	"fmt"
	"regexp"
	"strings"
)

// aclRule is one rule of mirror.acl.include, which says what ACLs of the source are carried over:
// type;name;operation;permission;principal. Fields may be left out from the end, * is any; name and principal are RE2
// expressions that match whole, the others Kafka's words in any case.
type aclRule struct {
	resource, operation, permission int8           // aclAny = any
	name, principal                 *regexp.Regexp // nil = any
}

const aclAny int8 = -1

// The words of ACLs. Kafka: ResourceType, AclOperation, AclPermissionType; CLUSTER_MIRROR is KIP-1279's.
var (
	aclResources = map[string]int8{
		"TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TRANSACTIONAL_ID": 5, "DELEGATION_TOKEN": 6, "USER": 7, "CLUSTER_MIRROR": 8,
	}
	aclOperations = map[string]int8{
		"ALL": 2, "READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8, "CLUSTER_ACTION": 9,
		"DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11, "IDEMPOTENT_WRITE": 12, "CREATE_TOKENS": 13, "DESCRIBE_TOKENS": 14,
		"TWO_PHASE_COMMIT": 15,
	}
	aclPermissions = map[string]int8{"DENY": 2, "ALLOW": 3}
)

// parseACLRules reads the rules of v, which are separated by commas.
func parseACLRules(v string) ([]aclRule, error) {
	var rules []aclRule
	for _, text := range splitList(v) {
		rule, err := parseACLRule(text)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", text, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseACLRule(text string) (aclRule, error) {
	fields := strings.Split(text, ";")
	if len(fields) > 5 {
		return aclRule{}, fmt.Errorf("%d fields, at most type;name;operation;permission;principal", len(fields))
	}
	for len(fields) < 5 {
		fields = append(fields, "*")
	}
	var rule aclRule
	var err error
	if rule.resource, err = aclWord("resource type", aclResources, fields[0]); err != nil {
		return rule, err
	}
	if rule.name, err = aclExpression("name", fields[1]); err != nil {
		return rule, err
	}
	if rule.operation, err = aclWord("operation", aclOperations, fields[2]); err != nil {
		return rule, err
	}
	if rule.permission, err = aclWord("permission", aclPermissions, fields[3]); err != nil {
		return rule, err
	}
	rule.principal, err = aclExpression("principal", fields[4])
	return rule, err
}

func aclWord(what string, words map[string]int8, field string) (int8, error) {
	field = strings.ToUpper(strings.TrimSpace(field))
	if field == "*" {
		return aclAny, nil
	}
	n, ok := words[field]
	if !ok {
		known := make([]string, 0, len(words))
		for word := range words {
			known = append(known, word)
		}
		return 0, fmt.Errorf("%q is no %s: the nearest is %s", field, what, nearestKey(field, known))
	}
	return n, nil
}

func aclExpression(what, field string) (*regexp.Regexp, error) {
	field = strings.TrimSpace(field)
	switch field {
	case "*":
		return nil, nil
	case "":
		return nil, fmt.Errorf("the %s is empty: * is any", what)
	}
	re, err := regexp.Compile(`^(?:` + field + `)$`)
	if err != nil {
		return nil, fmt.Errorf("the %s %q is no RE2 expression: %w", what, field, err)
	}
	re.Longest()
	return re, nil
}

// matches reports whether the rule includes an ACL.
func (r *aclRule) matches(acl *ACLRecord) bool {
	word := func(rule, is int8) bool { return rule == aclAny || rule == is }
	text := func(rule *regexp.Regexp, is string) bool { return rule == nil || rule.MatchString(is) }
	return word(r.resource, acl.ResourceType) && text(r.name, acl.ResourceName) && word(r.operation, acl.Operation) &&
		word(r.permission, acl.PermissionType) && text(r.principal, acl.Principal)
}
